// The connection to another thread, the same in pages and in Node.

/** One end of a connection to another thread. Messages are structured clones. */
export interface Port {
  post(message: unknown, transfer?: ArrayBuffer[]): void;
  /** Handles messages. The owner sets it before the first message can arrive. */
  onmessage: (message: never) => void;
  /** Called when the other end has failed. It sends no further messages. */
  onerror: (failure: Error) => void;
  /** Closes the connection. If this end started the thread, `close` ends the thread. */
  close(): void;
}
