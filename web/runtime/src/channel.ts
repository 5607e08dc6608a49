// Finds the owner of a store: the one worker of a site that has the store's files open. The owner holds a lock with the hub's name. Other
// workers, the peers, send it their calls. They find it by a channel on which it listens, the hub. Each peer also has a separate channel:
//
//     tab A, worker ──lock──▶ files          hub      "sightline/NAME"        hello, here
//        ▲  ▲                                own      "sightline/NAME/PEER"   welcome, calls, answers
//        │  └── own channel ── tab B, worker, which waits for the lock
//        └───── own channel ── service worker
//
// When the owner closes, the browser gives the lock to the next waiting tab, which opens the files. A peer holds a lock with its channel's
// name, so that the owner knows that it still runs.

import { Desk, type EngineHandle, type FromEngine, type RuntimeInfo, type ToEngine } from './host.ts';

export const hubName = (store: string) => `sightline/${store}`;
export const peerName = (store: string, peer: string) => `sightline/${store}/${peer}`;

/** The messages on the hub: a peer's `hello` with its id, and the owner's `here` when it starts. */
export type Hub = { hello: string } | { here: true };

/** The owner's side: answers peers with the engine. It returns a function that closes the channels. */
export function listen(store: string, running: EngineHandle, opened: RuntimeInfo): () => void {
  const hub = new BroadcastChannel(hubName(store));
  const peers = new Map<string, BroadcastChannel>();
  const admit = (peer: string) => {
    const name = peerName(store, peer);
    const line = peers.get(peer) ?? new BroadcastChannel(name);
    line.postMessage({ opened: { ...opened, owner: false } } satisfies FromEngine);
    if (peers.has(peer)) return;
    peers.set(peer, line);
    const desk = new Desk(running, (m) => line.postMessage(m));
    line.onmessage = ({ data }: MessageEvent<ToEngine>) => void desk.take(data);
    void navigator.locks.request(name, () => {
      desk.leave(); // the peer's worker has ended
      line.close();
      peers.delete(peer);
    });
  };
  hub.onmessage = ({ data }: MessageEvent<Hub>) => 'hello' in data && admit(data.hello);
  hub.postMessage({ here: true } satisfies Hub);
  return () => {
    hub.close();
    for (const line of peers.values()) line.close();
    running.watches.clear();
  };
}

/** A peer's side: the connection to the owner of the store, also to a later owner. */
export class Peer {
  /** Handles the owner's messages. The first is `opened`, which comes again after each change of owner. */
  onmessage: (m: FromEngine) => void = () => {};

  #hub: BroadcastChannel;
  #line: BroadcastChannel;
  #leave = () => {};

  private constructor(store: string, peer: string) {
    this.#hub = new BroadcastChannel(hubName(store));
    this.#line = new BroadcastChannel(peerName(store, peer));
    const hello = () => this.#hub.postMessage({ hello: peer } satisfies Hub);
    this.#hub.onmessage = ({ data }: MessageEvent<Hub>) => 'here' in data && hello();
    this.#line.onmessage = ({ data }: MessageEvent<FromEngine>) => this.onmessage(data);
    this.hello = hello;
  }

  /** Announces this peer to the owner, which answers with `opened`. */
  hello: () => void;

  static async open(store: string): Promise<Peer> {
    const peer = crypto.randomUUID();
    const p = new Peer(store, peer);
    await new Promise<void>((resolve) => {
      void navigator.locks.request(peerName(store, peer), () => {
        resolve();
        return new Promise<void>((leave) => {
          p.#leave = leave;
        });
      });
    });
    return p;
  }

  post(m: ToEngine): void {
    this.#line.postMessage(m);
  }

  close(): void {
    this.#hub.close();
    this.#line.close();
    this.#leave();
  }
}
