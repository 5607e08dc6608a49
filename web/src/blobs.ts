/**
 * Revokes the address of a blob in a later task. An img element begins to load its address in a microtask, after the code that set it.
 * An address that is revoked before that fails to load, and the browser reports an error.
 */
export function revoke(address: string): void {
  setTimeout(() => URL.revokeObjectURL(address));
}
