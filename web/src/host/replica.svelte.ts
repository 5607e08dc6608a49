// An open replica of an application on this device: its status, its pending operations, and requests to it. All pages share one open
// replica. All displayed facts are read from the replica, and none is derived from a person's actions.
import { type Fetch, inputPath } from '../api/client';
import { Failure, pageToken } from '../api/console';
import { pause } from '../api/retry';
import { browserId, browserName } from '../browser/browser';
import { readChoice } from '../browser/storage';
import { Device, type Opening, runtime } from './device.svelte';
import { canDraw } from './drawable.svelte';
import { type OfflineApp, offlineApp, removeOfflineApp, saveOfflineApp } from './offlineApps';
import { Outbox, type Status } from './outbox.svelte';
import { sessionState } from './session.svelte';

export class Replica extends Outbox {
  readonly app: OfflineApp;
  readonly device: Device;
  /** Whether this browser had no replica before. If so, it has no earlier pending operations. */
  readonly fresh: boolean;

  isOfflineByChoice = $state(false); // the person switched contact with the origin off
  isComplete = $state(false); // the replica was once as complete as the origin, perhaps at an earlier visit
  salvaged = $state.raw<OfflineApp['salvaged']>(); // the part that was left of a damaged replica; undefined if it was never damaged
  #isRemembered = false;
  #savedContact: string | undefined; // time of the last contact that is stored in the browser's list

  constructor(app: OfflineApp) {
    super();
    this.app = app;
    this.fresh = offlineApp(app.id) === undefined;
    this.isOfflineByChoice = app.offline ?? false;
    this.isComplete = app.whole ?? false;
    this.salvaged = app.salvaged;
    this.#savedContact = app.contact;
    this.device = new Device({
      copy: {
        origin: '',
        app: app.id,
        name: browserName(navigator.userAgent),
        device: browserId(),
        credential: async () => `Bearer ${(await pageToken(app.id)).token}`,
        offline: this.isOfflineByChoice,
        ...(app.eager && { pictures: 'eager' as const }),
      },
    });
  }

  /** Opens the replica, and reports whether it is open. The first opening needs the origin. */
  async open(how: Opening = {}): Promise<boolean> {
    await this.device.open(how);
    const sync = this.#sync;
    if (!sync) return false;
    const { state } = this.device;
    if (state.is === 'ready' && state.salvaged) this.salvaged = state.salvaged;
    sync.onchange = (status) => void this.#take(status);
    this.setStatus(await sync.status());
    await this.refresh();
    return this.#sync !== undefined;
  }

  /**
   * Opens a replica that could not be opened, or that ended, because the origin was unreachable. It tries every 5 seconds while `isWanted`
   * returns true, and reports whether the replica is open.
   */
  async openWhenReachable(isWanted: () => boolean): Promise<boolean> {
    const isUnreached = () => {
      const { state } = this.device;
      const failure = isWanted() && state.is === 'failed' ? state.failure : undefined;
      return failure instanceof Failure && failure.status === 0;
    };
    while (isUnreached()) {
      await new Promise((resolve) => setTimeout(resolve, pause));
      if (isUnreached() && (await this.open())) return true;
    }
    return false;
  }

  /** Stores the replica in the browser's list of offline applications, unless its account has signed out here, perhaps in another tab. */
  remember(): void {
    this.#isRemembered = true;
    this.#savedContact = this.contact;
    const session = sessionState();
    const account = this.app.account ?? (session.is === 'known' ? session.session.account?.id : undefined);
    if (account && account !== readChoice('account')) return;
    saveOfflineApp({
      ...this.app,
      ...(account && { account }),
      offline: this.isOfflineByChoice,
      whole: this.isComplete,
      ...(this.salvaged && { salvaged: this.salvaged }),
      ...(this.#savedContact && { contact: this.#savedContact }),
    });
  }

  /** The time of the origin's last answer to the replica, on this page or before; undefined if it never answered. */
  get contact(): string | undefined {
    return this.status?.contact ?? this.app.contact;
  }

  get #sync() {
    return this.device.client?.sync;
  }

  async #take(status: Status): Promise<void> {
    this.setStatus(status);
    if (status.as_of && !this.isComplete) {
      this.isComplete = true;
      if (this.#isRemembered) this.remember();
    }
    if (this.#isRemembered && isLater(status.contact, this.#savedContact)) this.remember();
    await this.refresh();
  }

  readonly ask: Fetch = (path, init) => this.device.ask(path, init);

  /**
   * Returns the answer with an input's picture, or with its rendition if this browser does not draw the picture. It returns undefined if the
   * picture is not stored here.
   */
  async pictureOf(id: string): Promise<Response | undefined> {
    const at = { params: { path: { input_id: id } } };
    const found = await this.v2.GET('/inputs/{input_id}/source', at).catch(() => undefined);
    const { picture, content_type: type = '' } = found?.source ?? {};
    if (!picture) return undefined;
    const answer = await this.ask((await canDraw(type)) ? new URL(picture).pathname : inputPath(id, 'rendition'));
    return answer.ok ? answer : undefined;
  }

  protected override async readStatus(): Promise<Status | undefined> {
    return this.#sync?.status();
  }

  protected get reads(): boolean {
    return this.#sync !== undefined && this.status?.phase !== 'purged';
  }

  protected get reached(): boolean {
    return this.isComplete || this.status?.contact !== undefined;
  }

  /** Whether the replica reports that the origin is unreachable. */
  readonly offline = $derived.by(() => {
    const { phase, problem } = this.status ?? { phase: 'stopped', problem: undefined };
    return (
      this.isOfflineByChoice || phase === 'unreachable' || phase === 'stopped' || (phase === 'connecting' && !!problem)
    );
  });

  /** Reports whether everything that the origin had at a moment is stored. moment: milliseconds since 1970. */
  has(moment: number): boolean {
    const { as_of: asOf } = this.status ?? {};
    return asOf !== undefined && Date.parse(asOf) >= moment;
  }

  /** Disconnects the replica from its origin, or connects it again. */
  setOfflineByChoice(isOfflineByChoice: boolean): void {
    this.isOfflineByChoice = isOfflineByChoice;
    void this.#sync?.offline(isOfflineByChoice);
    this.remember();
  }

  /** Returns the digest of the stored part of the origin's log. It throws if the replica is not open. */
  async digest() {
    const sync = this.#sync;
    if (!sync) throw new DOMException('the copy is not open', 'InvalidStateError');
    return sync.digest();
  }

  async close(): Promise<void> {
    const sync = this.#sync;
    if (sync) sync.onchange = undefined;
    this.cancelReads();
    await this.device.close();
  }
}

const minute = 60_000; // ms

/** Reports whether a contact is at least a minute later than the stored one, `met`. */
function isLater(contact: string | undefined, met: string | undefined): boolean {
  return contact !== undefined && (met === undefined || Date.parse(contact) - Date.parse(met) >= minute);
}

/** Deletes a replica with its pending operations. The replica must be closed. */
export async function removeReplica(app: string): Promise<void> {
  await (await runtime()).Sightline.remove(`copy-${app}`);
  removeOfflineApp(app);
}
