// This browser's memory of a person's choices. It never contains a secret.

type Name =
  | 'language'
  | 'theme'
  | 'keys'
  | 'copies' // on this device
  | 'declined' // copies that are not wanted
  | 'app' // the application that was chosen last
  | 'looked' // a picture was shown before
  | 'meanwhile' // the server answers until the recogniser is loaded
  | 'tongues'; // of the names of concepts

/** A remembered choice; undefined where there is none, or where the browser keeps nothing. */
export function kept(name: Name): string | undefined {
  try {
    return localStorage.getItem(name) ?? undefined;
  } catch {
    return undefined;
  }
}

/** Remembers a choice; undefined forgets it. */
export function keep(name: Name, value: string | undefined): void {
  try {
    if (value === undefined) localStorage.removeItem(name);
    else localStorage.setItem(name, value);
  } catch {
    // The choice holds until the page is closed.
  }
}
