// The script of all threads in Node.

import { parentPort } from 'node:worker_threads';
import {
  Asker,
  analyser,
  Desk,
  type EngineHandle,
  type FromEngine,
  infoOf,
  type Platform,
  run,
  type ToAnalyser,
  type ToEngine,
} from './host.ts';
import { served } from './load.ts';
import { FolderFiles, inFolder } from './nodefiles.ts';
import { spawn } from './nodeport.ts';

const platform: Platform = {
  source: (base) => (base.startsWith('file:') ? inFolder(new URL(base)) : served(new URL(base))),
  files: async ({ store }) => (typeof store === 'object' ? new FolderFiles(store.folder) : undefined),
  spawn,
};

const port = parentPort;
if (!port) throw new Error('this script runs in a worker thread');
const post = (m: unknown, transfer: ArrayBuffer[] = []) => port.postMessage(m, transfer);
const sendToClient = (m: FromEngine, transfer?: ArrayBuffer[]) => post(m, transfer);
const analyse = analyser({ post, onmessage: () => {}, onerror: () => {}, close: () => port.close() });

const asker = new Asker(sendToClient);
let running: EngineHandle | undefined;
let desk: Desk | undefined;

async function take(m: ToEngine | ToAnalyser): Promise<void> {
  if ('analyser' in m || 'job' in m || 'film' in m || 'module' in m) return analyse(m);
  if ('start' in m) {
    running = await run(platform, m.start, (progress) => sendToClient({ progress }), asker);
    desk = new Desk(running, sendToClient);
    return sendToClient({ opened: infoOf(running) });
  }
  if ('credential' in m) return asker.take(m);
  if ('close' in m) {
    await running?.close();
    return sendToClient({ closed: true });
  }
  return desk?.take(m);
}

port.on('message', (m: ToEngine | ToAnalyser) => {
  take(m).catch(({ name, message }: Error) => sendToClient({ failed: message, name }));
});
post({ alive: true }); // Spares waits for this message
