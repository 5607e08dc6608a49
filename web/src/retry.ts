// Repeats calls that the server refused because of the rate limit of a key or an account. A refused call had no effect, and the answer
// contains the time of the next try.

const maxWait = 10; // maximum seconds of waiting before the caller gets the refusal

/** Returns the seconds to wait before the next call, from the Retry-After header; 0 if the answer has none. */
export function retryAfter(answer: Response): number {
  return Number(answer.headers.get('Retry-After')) || 0;
}

/** Makes a call, and repeats it while the answer is 429, after the time in the answer. It waits at most 10 seconds in total. */
export async function withRetry(ask: () => Promise<Response>, pause = seconds): Promise<Response> {
  for (let left = maxWait; ; ) {
    const answer = await ask();
    const wait = retryAfter(answer);
    if (answer.status !== 429 || !wait || wait > left) return answer;
    left -= wait;
    await pause(wait);
  }
}

const seconds = (n: number) => new Promise<void>((resolve) => setTimeout(resolve, n * 1000));
