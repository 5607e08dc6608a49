// Repeats calls that the server refused because of a rate limit, or because it is busy. The answer contains the time of the next try. A call
// that a rate limit refused had no effect. A busy server may have begun a call, so only calls that read are repeated then.

/** Milliseconds between two attempts to open a replica, or to reach an unreachable origin. */
export const pause = 5000;
const maxWait = 10; // maximum seconds of waiting before the caller gets the refusal

/** Returns the seconds to wait before the next call, from the Retry-After header; 0 if the answer has none. */
export function retryAfter(answer: Response): number {
  return Number(answer.headers.get('Retry-After')) || 0;
}

/** Makes a call with an HTTP method, and repeats it after the time in a refusal. It waits at most 10 seconds in total. */
export async function withRetry(ask: () => Promise<Response>, method = 'GET', wait = seconds): Promise<Response> {
  const refusals = method === 'GET' || method === 'HEAD' ? [429, 503] : [429];
  for (let left = maxWait; ; ) {
    const answer = await ask();
    const after = retryAfter(answer);
    if (!refusals.includes(answer.status) || !after || after > left) return answer;
    left -= after;
    await wait(after);
  }
}

const seconds = (n: number) => new Promise<void>((resolve) => setTimeout(resolve, n * 1000));
