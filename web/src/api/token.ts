// A page's access token for the origin. One request serves all waiting callers. When the token expires or is refused, the next caller
// requests another one.

/** A token as the origin issues it. expires_in: its lifetime in seconds. */
export interface IssuedToken {
  readonly token: string;
  readonly expires_in: number;
}

const early = 60_000; // ms before its expiry at which a token is replaced
const patience = 10_000; // ms after which an unanswered request no longer serves later callers

export class Token {
  readonly #ask: () => Promise<IssuedToken>;
  readonly #now: () => number; // ms
  #current: { readonly text: string; readonly until: number } | undefined;
  #request: { readonly answer: Promise<string>; readonly until: number } | undefined;

  constructor(ask: () => Promise<IssuedToken>, now = () => performance.now()) {
    this.#ask = ask;
    this.#now = now;
  }

  /** Returns a token that is not known to be expired or refused. If the request for it fails, it rejects, and the next call repeats it. */
  get(): Promise<string> {
    const now = this.#now();
    if (this.#current && now < this.#current.until) return Promise.resolve(this.#current.text);
    if (this.#request && now < this.#request.until) return this.#request.answer;
    const request = { answer: this.#issue(), until: now + patience };
    this.#request = request;
    const clearRequest = () => {
      if (this.#request === request) this.#request = undefined;
    };
    request.answer.then(clearRequest, clearRequest);
    return request.answer;
  }

  async #issue(): Promise<string> {
    const startedAt = this.#now();
    const { token, expires_in } = await this.#ask();
    this.#current = { text: token, until: startedAt + expires_in * 1000 - early };
    return token;
  }

  /** Drops a token that the origin refused. */
  refuse(text: string): void {
    if (this.#current?.text === text) this.#current = undefined;
  }
}
