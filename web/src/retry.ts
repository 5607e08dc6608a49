// Refusals because the rate of a key or an account is used up: nothing was done, and they contain the time of the next try.

const most = 10; // maximum seconds of waiting, before the caller gets the refusal

/** How many seconds an answer asks for before the next call; 0: it does not say. */
export function retryAfter(answer: Response): number {
  return Number(answer.headers.get('Retry-After')) || 0;
}

/** Asks again, when it is time, what was refused for its rate alone. */
export async function withRetry(ask: () => Promise<Response>, pause = seconds): Promise<Response> {
  for (let left = most; ; ) {
    const answer = await ask();
    const wait = retryAfter(answer);
    if (answer.status !== 429 || !wait || wait > left) return answer;
    left -= wait;
    await pause(wait);
  }
}

const seconds = (n: number) => new Promise<void>((resolve) => setTimeout(resolve, n * 1000));
