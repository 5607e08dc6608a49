export * from './clause';
export { describe } from './describe';
export { drop, ready } from './pictures';
export { address, isReadable, parse, pointOf, queryText, toQuery } from './query';
