// A line to another thread, in pages and in Node alike.

/** One end of it. Messages are structured clones. */
export interface Port {
  post(message: unknown, transfer?: ArrayBuffer[]): void;
  /** Handles messages; set once, before the first can arrive. */
  onmessage: (message: never) => void;
  /** The other end failed, for good. */
  onerror: (failure: Error) => void;
  /** Ends the line, and the thread behind it where this end made it. */
  close(): void;
}
