// Starts worker threads in Node and connects to them by a Port.

import { Worker } from 'node:worker_threads';
import type { Port } from './port.ts';

/** Starts a worker thread. The thread ends when the port is closed. Until then the program does not exit. */
export function spawn(): Port {
  const worker = new Worker(new URL('./nodeworker.js', import.meta.url));
  const port: Port = {
    post: (message, transfer = []) => worker.postMessage(message, transfer),
    onmessage: () => {},
    onerror: () => {},
    close: () => void worker.terminate(),
  };
  worker.on('message', (m) => port.onmessage(m as never));
  worker.on('error', (failure: Error) => port.onerror(failure));
  return port;
}
