// A video on the page: its frames as they come from the recogniser, and the time that is shown.
import type { Client } from '../../../runtime/src/index';
import { call } from '../../apiCall';
import { revoke } from '../../blobs';
import { number } from '../../i18n.svelte';
import type { components } from '../../v2';
import { type Concept, general } from './calls';
import { type Frame, places, strongest } from './curves';
import { isPlayable } from './videos';

/** A time as players write it: "1:05". */
export function clock(seconds: number): string {
  const whole = Math.floor(seconds + 1e-6);
  return `${number(Math.floor(whole / 60))}:${number(whole % 60, { minimumIntegerDigits: 2 })}`;
}

/** A frame with its picture. */
export interface Shown extends Frame {
  readonly picture: Blob; // JPEG
  readonly url: string; // of the picture, until the video is closed
}

const curves = 5; // concepts with a curve
const address = 'http://video.invalid/'; // of the file in the call; nothing is downloaded

export class Video {
  readonly file: File;
  readonly url: string;
  /** Milliseconds from one frame to the next. */
  readonly sample = 1000;
  /** Whether the browser plays it; undefined: it has not been tried. */
  playable = $state<boolean>();
  frames = $state.raw<readonly Shown[]>([]);
  /** How many frames there will be; 0: not known yet. */
  all = $state(0);
  reading = $state(false);
  failure = $state.raw<unknown>();
  ms = $state(0); // the call took

  seconds = $state(0); // that are shown
  paused = $state(true);
  /** The ids of the concepts with a curve, in the order of their colours. */
  strong = $state.raw<readonly string[]>([]);
  /** The concept that was picked to see where it is. */
  picked = $state<string>();

  /** The number of the frame at the time that is shown. */
  readonly index = $derived(
    Math.max(0, Math.min(Math.floor((this.seconds * 1000) / this.sample + 1e-6), this.all - 1)),
  );
  /** That frame, once it has come. */
  readonly shown = $derived(this.frames[this.index]);
  /** The end of the last frame, in seconds. */
  readonly end = $derived((this.all * this.sample) / 1000);

  #stop: AbortController | undefined;
  #names = new Map<string, string>();

  constructor(file: File) {
    this.file = file;
    this.url = URL.createObjectURL(file);
  }

  /** A concept's name. */
  name(id: string): string {
    return this.#names.get(id) ?? id;
  }

  /** Has every frame recognised, with names in a language. A reading that is under way ends. */
  async read(client: Client, language: string): Promise<void> {
    this.#end();
    const mine = new AbortController();
    this.#stop = mine;
    this.failure = undefined;
    this.reading = true;
    const began = performance.now();
    let taken: Promise<void> = Promise.resolve();
    try {
      this.playable ??= await isPlayable(this.url);
      if (mine.signal.aborted) return;
      const ask = (path: string, init?: RequestInit) =>
        client.fetch(path, {
          ...init,
          signal: mine.signal,
          files: { [address]: this.file },
          pictures: this.playable ? 'thumbnail' : 'full',
          onFrames: ({ frame, of }) => {
            taken = taken.then(async () => {
              const answer = await frame?.answer.json();
              if (frame && !mine.signal.aborted) this.#take(answer, frame.picture, of);
            });
          },
        });
      await call(ask, 'POST', `/models/${general}/outputs`, {
        inputs: [{ data: { video: { url: address } } }],
        model: { output_info: { output_config: { language, sample_ms: this.sample } } },
      });
      await taken;
    } catch (failure) {
      await taken.catch(() => {});
      if (!mine.signal.aborted) this.failure = failure;
    } finally {
      if (this.#stop === mine) {
        this.reading = false;
        this.ms = performance.now() - began;
      }
    }
  }

  #take(answer: components['schemas']['OutputsAnswer'], picture: Blob, of: number): void {
    const frame = answer.outputs?.[0]?.data?.frames?.[0];
    if (!frame) return;
    const concepts = (frame.data?.concepts ?? []) as Concept[];
    for (const { id, name } of concepts) this.#names.set(id, name);
    this.all = of;
    this.frames = [
      ...this.frames,
      { time: frame.frame_info?.time ?? 0, concepts, picture, url: URL.createObjectURL(picture) },
    ];
    this.strong = places(this.strong, strongest(this.frames, curves));
  }

  /** Shows a time. */
  seek(seconds: number): void {
    this.seconds = Math.max(0, Math.min(seconds, Math.max(0, this.end - 0.001)));
  }

  /** Shows the frame so many before or after the one that is shown. */
  step(by: number): void {
    this.paused = true;
    const to = Math.max(0, Math.min(this.index + by, this.frames.length - 1));
    this.seek((to * this.sample) / 1000);
  }

  /** Plays it, from its beginning once it is over, or stops it. */
  toggle(): void {
    if (!this.frames.length && !this.playable) return;
    if (this.paused && this.end && this.seconds >= this.end - 0.05) this.seek(0);
    this.paused = !this.paused;
  }

  /** Picks a concept, or unpicks the picked one. */
  pick(id: string): void {
    this.picked = this.picked === id ? undefined : id;
  }

  #end(): void {
    this.#stop?.abort();
    this.#stop = undefined;
    for (const { url } of this.frames) revoke(url);
    this.frames = [];
    this.all = 0;
    this.strong = [];
    this.reading = false;
  }

  /** Ends the reading and frees what the browser holds. */
  close(): void {
    this.#end();
    revoke(this.url);
  }
}
