// What went wrong, in the reader's words: what happened, then what to do.
import { Failure } from './console';
import { m } from './words.svelte';

export interface Problem {
  title: string;
  text: string;
  code: string; // for whoever can help; empty where nobody needs it
}

/** The words for a failed call. */
export function problem(failure: unknown): Problem {
  if (!(failure instanceof Failure)) {
    return { title: m.error_page(), text: m.error_page_do(), code: String(failure) };
  }
  if (failure.status === 0) return { title: m.error_offline(), text: m.error_offline_do(), code: '' };
  const known = byCode(failure);
  if (known) return { ...known, code: '' };
  const code = [failure.code || failure.status, failure.request].filter(Boolean).join(', ');
  return { title: m.error_other(), text: failure.details || failure.description, code };
}

function byCode(f: Failure): Omit<Problem, 'code'> | undefined {
  switch (f.code) {
    case 11002:
      return { title: m.error_password(), text: m.error_password_do() };
    case 11005: {
      const seconds = Math.max(1, f.retryAfter);
      const text =
        seconds < 120
          ? m.error_rate_seconds({ count: seconds })
          : m.error_rate_minutes({ count: Math.ceil(seconds / 60) });
      return { title: m.error_rate(), text };
    }
    case 11006:
      return { title: m.error_quota(), text: m.error_quota_do() };
    case 11101:
      return { title: m.error_missing(), text: m.error_missing_do() };
  }
  if (f.status === 401) return { title: m.error_session(), text: m.error_session_do() };
  return undefined;
}
