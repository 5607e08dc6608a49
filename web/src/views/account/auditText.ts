import { m } from './words';

const deeds: Record<string, () => string> = {
  'account.create': () => m.audit_account_create(),
  'account.name': () => m.audit_account_name(),
  'account.email': () => m.audit_account_email(),
  'account.verify': () => m.audit_account_verify(),
  'account.verify.failed': () => m.audit_account_verify_failed(),
  'account.password': () => m.audit_account_password(),
  'account.password.mail': () => m.audit_account_password_mail(),
  'account.password.reset': () => m.audit_account_password_reset(),
  'account.erase': () => m.audit_account_erase(),
  'session.create': () => m.audit_session_create(),
  'session.create.failed': () => m.audit_session_create_failed(),
  'session.delete': () => m.audit_session_delete(),
  'app.create': () => m.audit_app_create(),
  'app.change': () => m.audit_app_change(),
  'app.delete': () => m.audit_app_delete(),
  'app.export': () => m.audit_app_export(),
  'inputs.delete_all': () => m.audit_inputs_delete_all(),
  'key.create': () => m.audit_key_create(),
  'key.replace': () => m.audit_key_replace(),
  'key.delete': () => m.audit_key_delete(),
  'client.secret': () => m.audit_client_secret(),
  'tokens.revoke': () => m.audit_tokens_revoke(),
  'edge.create': () => m.audit_edge_create(),
  'edge.revoke': () => m.audit_edge_revoke(),
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
