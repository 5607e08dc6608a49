export * from './clause';
export { describe } from './describe';
export { drop, ready } from './pictures';
export { address, isPoint, isReadable, parse, queryText, toQuery } from './query';
