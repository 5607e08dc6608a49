// The credential for an origin. The runtime asks the page for it, and asks again when the origin refuses it or it has nearly expired. It is
// in memory only.

const expiryMargin = 30_000; // ms before a token's expiry at which it is replaced

/** Returns values for the header Authorization, from memory or from the page. */
export class Credential {
  #ask: () => Promise<string>;
  #current: { value: string; until: number } | undefined;
  #asking: Promise<string> | undefined;

  constructor(ask: () => Promise<string>) {
    this.#ask = ask;
  }

  /** Returns a value that has not expired and that the origin has not refused. It rejects with the page's error. */
  get(): Promise<string> {
    if (this.#current && Date.now() < this.#current.until) return Promise.resolve(this.#current.value);
    this.#asking ??= this.#ask()
      .then((value) => {
        this.#current = { value, until: Date.now() + lifetime(value) };
        return value;
      })
      .finally(() => {
        this.#asking = undefined;
      });
    return this.#asking;
  }

  /** Forgets a value that the origin has refused, so that the next `get` asks the page. */
  refuse(value: string): void {
    if (this.#current?.value === value) this.#current = undefined;
  }
}

/**
 * Returns the time in milliseconds for which a value can be used from now on. For a token with `iat` it is the difference to `exp`, so that
 * a wrong clock of the device does not matter. It is infinite for other credentials.
 */
function lifetime(authorization: string): number {
  const claims = /^Bearer\s+[\w-]+\.([\w-]+)\./i.exec(authorization)?.[1];
  if (!claims) return Number.POSITIVE_INFINITY;
  try {
    const { iat, exp } = JSON.parse(atob(claims.replaceAll('-', '+').replaceAll('_', '/')));
    if (!Number.isFinite(exp)) return Number.POSITIVE_INFINITY;
    return Math.max(0, (Number.isFinite(iat) ? 1000 * (exp - iat) : 1000 * exp - Date.now()) - expiryMargin);
  } catch {
    return Number.POSITIVE_INFINITY; // the origin refuses another kind of credential when it expires
  }
}
