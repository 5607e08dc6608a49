// The person's choices, stored in this browser. They never contain a secret. deviceData.ts deletes those of an account.

type Name =
  | 'language'
  | 'theme'
  | 'keys'
  | 'copies' // the applications that are stored offline on this device
  | 'declined' // the applications that the person does not want offline
  | 'app' // the last selected application
  | 'browser' // the random ID by which origins remember the contacts of this browser
  | 'account' // the account of the last session here, unless that ended by signing out
  | 'leaving' // the stores that still have to be deleted after a sign-out
  | 'looked' // a picture was shown before
  | 'meanwhile' // the server answers until the recogniser is loaded
  | 'tongues'; // the languages of concept names

/** Returns a stored choice. If there is none, or if the browser permits no storage, it returns undefined. */
export function readChoice(name: Name): string | undefined {
  try {
    return localStorage.getItem(name) ?? undefined;
  } catch {
    return undefined;
  }
}

/** Stores a choice; undefined deletes it. */
export function saveChoice(name: Name, value: string | undefined): void {
  try {
    if (value === undefined) localStorage.removeItem(name);
    else localStorage.setItem(name, value);
  } catch {
    // The choice is valid until the page is closed.
  }
}
