// Detects videos by type, name and bytes, and tests whether the browser can play them.

const endings = /\.(mp4|m4v|mov|qt|3gp|3g2|webm|mkv|avi|wmv|asf|mpg|mpeg|m2ts|mts|flv|ogv)$/i;

/** Reports whether a file is a video: by its type, or by its extension if the browser does not know the type. */
export function isVideo({ name, type }: File): boolean {
  return type.startsWith('video/') || ((type === '' || type === 'application/octet-stream') && endings.test(name));
}

/** Splits files into videos and others. A GIF or WebP with more than one picture is a video. */
export async function splitVideos(files: readonly File[]): Promise<{ videos: File[]; others: File[] }> {
  const moving = await Promise.all(files.map(async (file) => isVideo(file) || (await isAnimated(file))));
  return { videos: files.filter((_, i) => moving[i]), others: files.filter((_, i) => !moving[i]) };
}

const maxPictureBytes = 20 << 20;

/**
 * Reports whether a file is an animated GIF or WebP. An animated GIF has at least two graphic control extensions, and an animated WebP
 * has a flag in its header. GIFs over 20 MiB are not read and count as pictures.
 */
export async function isAnimated(file: Blob): Promise<boolean> {
  const head = new Uint8Array(await file.slice(0, 32).arrayBuffer());
  const text = String.fromCharCode(...head);
  if (/^RIFF.{4}WEBPVP8X/s.test(text)) return ((head[20] ?? 0) & 2) !== 0;
  if (!/^GIF8[79]a/.test(text) || file.size > maxPictureBytes) return false;
  const all = new Uint8Array(await file.arrayBuffer());
  const isTimed = (at: number) => all[at + 1] === 0xf9 && all[at + 2] === 4 && all[at + 7] === 0;
  let times = 0;
  for (let at = all.indexOf(0x21); at >= 0 && times < 2; at = all.indexOf(0x21, at + 1)) if (isTimed(at)) times++;
  return times > 1;
}

/** Reports whether the browser can display the pictures of a video. */
export function isPlayable(url: string): Promise<boolean> {
  const player = document.createElement('video');
  player.muted = true;
  player.preload = 'metadata';
  return new Promise<boolean>((resolve) => {
    player.onloadedmetadata = () => resolve(player.videoWidth > 0);
    player.onerror = () => resolve(false);
    player.src = url;
  }).finally(() => {
    player.onerror = null;
    player.removeAttribute('src');
    player.load(); // releases the file
  });
}

/** Returns the player's current picture as a PNG in full size. */
export function captureFrame(player: HTMLVideoElement): Promise<Blob> {
  const canvas = document.createElement('canvas');
  canvas.width = player.videoWidth;
  canvas.height = player.videoHeight;
  canvas.getContext('2d')?.drawImage(player, 0, 0);
  return new Promise((resolve, reject) =>
    canvas.toBlob((blob) => (blob ? resolve(blob) : reject(new Error('the player shows no picture')))),
  );
}
