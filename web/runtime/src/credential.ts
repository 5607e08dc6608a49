// The credential for an origin. It comes from the page at each need, is held in memory alone, and is requested again when the origin
// refuses it or it has nearly expired.

const early = 30_000; // ms before the end of a token

/** A source of values for the header Authorization. */
export class Credential {
  #ask: () => Promise<string>;
  #current: { value: string; until: number } | undefined;
  #asking: Promise<string> | undefined;

  constructor(ask: () => Promise<string>) {
    this.#ask = ask;
  }

  /** A value that may be valid. It rejects with the page's error. */
  get(): Promise<string> {
    if (this.#current && Date.now() < this.#current.until) return Promise.resolve(this.#current.value);
    this.#asking ??= this.#ask()
      .then((value) => {
        this.#current = { value, until: Date.now() + life(value) };
        return value;
      })
      .finally(() => {
        this.#asking = undefined;
      });
    return this.#asking;
  }

  /** The origin does not take a value: it is not used again. */
  refuse(value: string): void {
    if (this.#current?.value === value) this.#current = undefined;
  }
}

/** For how many milliseconds from now a value is good, as a token says of itself, by no clock but its own. */
function life(authorization: string): number {
  const claims = /^Bearer\s+[\w-]+\.([\w-]+)\./i.exec(authorization)?.[1];
  if (!claims) return Number.POSITIVE_INFINITY;
  try {
    const { iat, exp } = JSON.parse(atob(claims.replaceAll('-', '+').replaceAll('_', '/')));
    if (!Number.isFinite(exp)) return Number.POSITIVE_INFINITY;
    return Math.max(0, (Number.isFinite(iat) ? 1000 * (exp - iat) : 1000 * exp - Date.now()) - early);
  } catch {
    return Number.POSITIVE_INFINITY; // for other credentials the origin reports the end
  }
}
