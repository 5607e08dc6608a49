// Describes an error in the reader's language: what happened, and what to do.
import { Failure } from '../api/console';
import { row } from '../i18n/i18n.svelte';
import { m } from '../i18n/shared';
import { missingNames } from './scopeNames';

export interface Problem {
  title: string;
  text: string;
  code: string; // for support; empty if it does not help
}

/** Returns the text for a failed call, or for an error of the page itself. */
export function describeError(failure: unknown): Problem {
  if (failure instanceof Error && failure.name === 'NoModificationAllowedError')
    return { title: m.error_tab(), text: m.error_tab_do(), code: '' }; // it has the files of a store open
  if (!(failure instanceof Failure)) {
    return { title: m.error_page(), text: m.error_page_do(), code: String(failure) };
  }
  if (failure.status === 0) return { title: m.error_offline(), text: m.error_offline_do(), code: '' };
  const words = knownProblem(failure);
  if (words) return { code: '', ...words };
  const code = [failure.code || failure.status, failure.request].filter(Boolean).join(', ');
  return { title: m.error_other(), text: failure.details || failure.description, code };
}

/** Returns the message of an error, as the browser gives it. */
export const messageOf = (failure: unknown): string => (failure instanceof Error ? failure.message : String(failure));

/** The texts by the reason that the server gives for a refusal. */
const reasons: Record<string, () => Omit<Problem, 'code'>> = {
  code: () => ({ title: m.error_code_wrong(), text: m.error_code_wrong_do() }),
  link: () => ({ title: m.error_link(), text: m.error_link_do() }),
  taken: () => ({ title: m.error_taken(), text: m.error_taken_do() }),
  wrong_password: () => ({ title: m.error_wrong_password(), text: m.error_wrong_password_do() }),
  owner: () => ({ title: m.error_owner(), text: m.error_owner_do() }),
  password: () => ({ title: m.error_weak_password(), text: m.error_weak_password_do() }),
  email: () => ({ title: m.error_email(), text: m.error_email_do() }),
  name: () => ({ title: m.error_name(), text: m.error_name_do() }),
  text: () => ({ title: m.error_name(), text: m.error_name_do() }),
  sign_up: () => ({ title: m.error_sign_up(), text: m.error_sign_up_do() }),
  many: () => ({ title: m.error_many(), text: m.error_many_do() }),
  export: () => ({ title: m.error_export(), text: m.error_export_do() }),
  csrf: () => ({ title: m.error_stale(), text: m.error_stale_do() }),
  sign_in: () => ({ title: m.error_session(), text: m.error_session_do() }),
};

function knownProblem(f: Failure): (Omit<Problem, 'code'> & Partial<Problem>) | undefined {
  const reason = reasons[f.reason];
  if (reason) return reason();
  switch (f.code) {
    case 11002:
      return { title: m.error_password(), text: m.error_password_do() };
    case 11005: {
      const seconds = Math.max(1, f.retryAfter);
      const minutes = Math.ceil(seconds / 60);
      const text = seconds < 120 ? m.error_rate_seconds({ count: seconds }) : m.error_rate_minutes({ count: minutes });
      return { title: m.error_rate(), text };
    }
    case 11006:
      if (f.details.startsWith('Storage limit')) return { title: m.error_storage(), text: m.error_storage_do() };
      return { title: m.error_quota(), text: m.error_quota_do() };
    case 39998:
      return f.details.includes('store is full') ? { title: m.error_storage(), text: f.details } : undefined;
    case 11007: {
      // The scopes that the key lacks, as the server lists them.
      const scopes = f.details.split('lacks ').at(-1) ?? '';
      return {
        title: m.models_forbidden(),
        text: m.models_forbidden_do({ scopes: row(missingNames(scopes.split(', '))) }),
        code: scopes,
      };
    }
    case 11101:
      if (f.reason === 'application') return { title: m.error_missing(), text: m.error_missing_do() };
      return { title: missing(f.details), text: m.error_missing_any_do() };
  }
  return undefined;
}

/** Returns a text that names the kind of the missing thing. details: the server's text, for example "model_id 'sails' not found". */
function missing(details: string): string {
  switch (details.match(/^(\w+)_id '/)?.[1]) {
    case 'input':
      return m.error_missing_input();
    case 'concept':
      return m.error_missing_concept();
    case 'model':
      return m.models_not_found();
    case 'model_version':
      return m.models_version_not_found();
    default:
      return m.error_missing_any();
  }
}
