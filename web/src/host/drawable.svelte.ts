// Addresses of pictures for img elements. No browser draws all formats, such as HEIC, TIFF and camera raw. For such a picture a host makes
// a rendition: a JPEG of at most 2,048 pixels a side.

import { untrack } from 'svelte';
import { revoke } from '../api/blobs';

/** Makes the rendition of a picture. */
export type Render = (picture: Blob) => Promise<Blob>;

/** Reports whether this browser draws a type of picture, as far as it knows: an img element with such a picture may still fail. */
export async function canDraw(type: string): Promise<boolean> {
  if (!type.startsWith('image/') || typeof ImageDecoder === 'undefined') return true;
  return ImageDecoder.isTypeSupported(type).catch(() => true);
}

/** Reports whether an img element draws the picture at an address. */
export function draws(address: string): Promise<boolean> {
  return new Promise((resolve) => {
    const img = new Image();
    img.onload = () => resolve(true);
    img.onerror = () => resolve(false);
    img.src = address;
  });
}

/** A blob with its object URL. */
export interface Addressed {
  readonly blob: Blob;
  readonly address: string;
}

export const withAddress = (blob: Blob): Addressed => ({ blob, address: URL.createObjectURL(blob) });

/** Returns what this browser draws: the picture itself, or else its rendition. */
export async function drawable(picture: Blob, render: () => Promise<Blob>): Promise<Addressed> {
  if (await canDraw(picture.type)) {
    const found = withAddress(picture);
    if (await draws(found.address)) return found;
    revoke(found.address);
  }
  return withAddress(await render());
}

/** A displayed picture. */
export class Drawn {
  /** The object URL; empty until it is known. */
  address = $state('');
  /** Whether `address` is the URL of the picture itself. */
  isOriginal = $state(false);
  /** Whether neither the picture nor a rendition can be drawn now. */
  hasFailed = $state(false);
}

/** Returns the displayed form of a picture. While the calling component is mounted, it follows the picture and the host that renders. */
export function drawn(picture: () => Blob | undefined, render: () => Render | undefined): Drawn {
  const shown = new Drawn();
  $effect(() => {
    const [blob, by] = [picture(), render()];
    let isCurrent = true;
    let own = '';
    untrack(() => {
      shown.hasFailed = false;
    });
    if (!blob) return;
    drawable(blob, async () => {
      if (!by) throw new Error('no host renders this picture now');
      return by(blob);
    }).then(
      (found) => {
        if (!isCurrent) return revoke(found.address);
        own = shown.address = found.address;
        shown.isOriginal = found.blob === blob;
      },
      () => {
        if (isCurrent) shown.hasFailed = true;
      },
    );
    return () => {
      isCurrent = false;
      shown.address = '';
      if (own) revoke(own);
    };
  });
  return shown;
}

/** Renders a picture on this device, by a recogniser that it opens for this picture. */
export async function renderHere(picture: Blob): Promise<Blob> {
  const { Device } = await import('./device.svelte');
  const device = new Device({ store: 'memory', workers: 1 });
  try {
    await device.open();
    return await device.render(picture);
  } finally {
    void device.close();
  }
}
