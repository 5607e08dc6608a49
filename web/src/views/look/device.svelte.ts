// The recogniser on this device: the runtime, opened once for as long as the page is.
import type { Client, Options, Progress } from '../../../runtime/src/index';
import { Failure } from '../../console';
import type { Ask } from './calls';
import type { Mark } from './progress';

type State =
  | { is: 'closed' }
  | { is: 'opening'; stage: Progress['stage']; first?: Mark; last?: Mark; all: number } // bytes
  | { is: 'ready'; keeps: boolean } // whether what it is given outlives the page
  | { is: 'failed'; failure: unknown };

// The runtime is served as it is published: it is no part of the pages' own build.
const base = '/runtime/';

/** Its script. */
export function runtime(): Promise<typeof import('../../../runtime/src/index')> {
  return import(/* @vite-ignore */ `${base}index.js`);
}

let state = $state.raw<State>({ is: 'closed' });
let client: Client | undefined;
let stop: AbortController | undefined;

/** Whether the recogniser is there, and how far it is. */
export function device(): State {
  return state;
}

/** Opens it, where it is not open. */
export async function open(): Promise<void> {
  if (state.is === 'opening' || state.is === 'ready') return;
  const mine = new AbortController();
  stop = mine;
  state = { is: 'opening', stage: 'load', all: 0 };
  const options: Options = { base, signal: mine.signal, onProgress: (p) => stop === mine && mark(p) };
  try {
    const opened = await (await runtime()).Sightline.open(options);
    if (mine.signal.aborted) return await opened.close();
    client = opened;
    state = { is: 'ready', keeps: opened.store === 'private' };
  } catch (failure) {
    if (stop !== mine || mine.signal.aborted) return;
    const unreached =
      failure instanceof TypeError || (failure instanceof DOMException && failure.name === 'NetworkError');
    state = { is: 'failed', failure: unreached ? new Failure(0, 0, '', '', '', 0, '') : failure };
  }
}

function mark({ stage, allLoaded, allTotal }: Progress): void {
  if (state.is !== 'opening') return;
  if (allLoaded === undefined || allTotal === undefined) state = { ...state, stage };
  else {
    const last = { at: performance.now(), done: allLoaded };
    state = { is: 'opening', stage, first: state.first ?? last, last, all: allTotal };
  }
}

/** Stops opening it, or closes it. */
export async function close(): Promise<void> {
  stop?.abort();
  const was = client;
  client = undefined;
  state = { is: 'closed' };
  await was?.close();
}

/** Answers on this device. */
export const ask: Ask = async (path, init) => {
  if (!client) throw new DOMException('the recogniser is not open', 'InvalidStateError');
  return client.fetch(path, init);
};
