// A page's credential for the origin: a token, requested once for all waiting callers, and again when it has expired or is refused.

/** As the origin issues one: its life is in seconds. */
export interface IssuedToken {
  readonly token: string;
  readonly expires_in: number;
}

const early = 60_000; // ms before the end of a token
const patience = 10_000; // ms: who comes later waits for no ask that has had no answer for so long

export class Token {
  readonly #ask: () => Promise<IssuedToken>;
  readonly #now: () => number; // ms
  #current: { readonly text: string; readonly until: number } | undefined;
  #request: { readonly answer: Promise<string>; readonly until: number } | undefined;

  constructor(ask: () => Promise<IssuedToken>, now = () => performance.now()) {
    this.#ask = ask;
    this.#now = now;
  }

  /** One that may be good. It rejects as the origin refuses it; the next call asks again. */
  get(): Promise<string> {
    const now = this.#now();
    if (this.#current && now < this.#current.until) return Promise.resolve(this.#current.text);
    if (this.#request && now < this.#request.until) return this.#request.answer;
    const asked = { answer: this.#issue(), until: now + patience };
    this.#request = asked;
    const over = () => {
      if (this.#request === asked) this.#request = undefined;
    };
    asked.answer.then(over, over);
    return asked.answer;
  }

  async #issue(): Promise<string> {
    const began = this.#now();
    const { token, expires_in } = await this.#ask();
    this.#current = { text: token, until: began + expires_in * 1000 - early };
    return token;
  }

  /** The origin does not take one: it is not shown again. */
  refuse(text: string): void {
    if (this.#current?.text === text) this.#current = undefined;
  }
}
