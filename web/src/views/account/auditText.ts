import { m } from './words';

const deeds: Record<string, () => string> = {
  'account.create': () => m.deed_account_create(),
  'account.name': () => m.deed_account_name(),
  'account.email': () => m.deed_account_email(),
  'account.verify': () => m.deed_account_verify(),
  'account.verify.failed': () => m.deed_account_verify_failed(),
  'account.password': () => m.deed_account_password(),
  'account.password.mail': () => m.deed_account_password_mail(),
  'account.password.reset': () => m.deed_account_password_reset(),
  'account.erase': () => m.deed_account_erase(),
  'session.create': () => m.deed_session_create(),
  'session.create.failed': () => m.deed_session_create_failed(),
  'session.delete': () => m.deed_session_delete(),
  'app.create': () => m.deed_app_create(),
  'app.change': () => m.deed_app_change(),
  'app.delete': () => m.deed_app_delete(),
  'app.export': () => m.deed_app_export(),
  'inputs.delete_all': () => m.deed_inputs_delete_all(),
  'key.create': () => m.deed_key_create(),
  'key.replace': () => m.deed_key_replace(),
  'key.delete': () => m.deed_key_delete(),
  'client.secret': () => m.deed_client_secret(),
  'tokens.revoke': () => m.deed_tokens_revoke(),
  'edge.create': () => m.deed_edge_create(),
  'edge.revoke': () => m.deed_edge_revoke(),
};

/** Returns the text of an action in the audit log. For an unknown action, it returns the action's name. */
export function auditText(action: string): string {
  return deeds[action]?.() ?? action;
}

/**
 * Returns the name of the application that an action of the log changed. For the account itself it is empty. If the application no longer
 * exists, it is the application's id. target: an account's id, or an application's id, which may be followed by '/' and the id of a key or
 * an edge.
 */
export function subject(target: string, account: string, apps: readonly { id: string; name: string }[]): string {
  const [id = ''] = target.split('/');
  return id === account ? '' : (apps.find((app) => app.id === id)?.name ?? id);
}
