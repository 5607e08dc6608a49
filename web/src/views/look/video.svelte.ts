// The state of a video on the page: its frames from the recogniser, and the displayed time.
import type { Client } from '../../../runtime/src/index';
import { revoke } from '../../api/blobs';
import { fileUrl, type Schemas, v2 } from '../../api/client';
import { general } from '../../host/calls';
import { number } from '../../i18n/i18n.svelte';
import type { LanguageCode } from '../../i18n/languages';
import { assignSlots, type Frame, strongestConcepts } from './curves';
import { isPlayable } from './videos';

/** Formats a time as players do: "1:05". */
export function formatTime(seconds: number): string {
  const fullSeconds = Math.floor(seconds + 1e-6);
  return `${number(Math.floor(fullSeconds / 60))}:${number(fullSeconds % 60, { minimumIntegerDigits: 2 })}`;
}

/** A frame with its picture. */
export interface VideoFrame extends Frame {
  readonly picture: Blob; // JPEG
  readonly url: string; // object URL of the picture, until the video is read again or closed
}

const maxCurves = 5;

export class Video {
  readonly file: File;
  readonly url: string;
  /** The time from one frame to the next, in milliseconds. */
  readonly frameMillis = 1000;
  /** Whether the browser can play the video; undefined before the first attempt. */
  playable = $state<boolean>();
  frames = $state.raw<readonly VideoFrame[]>([]);
  /** The number of frames; 0 while it is unknown. */
  frameCount = $state(0);
  isReading = $state(false);
  failure = $state.raw<unknown>();
  ms = $state(0); // duration of the last call

  seconds = $state(0); // displayed time in seconds
  paused = $state(true);
  /** The ids of the concepts with a curve, in the order of their colours. */
  curveConcepts = $state.raw<readonly string[]>([]);
  /** The id of the picked concept; the timeline highlights the ranges that show it. */
  pickedConcept = $state<string>();

  /** The index of the frame at the displayed time. */
  readonly index = $derived(
    Math.max(0, Math.min(Math.floor((this.seconds * 1000) / this.frameMillis + 1e-6), this.frameCount - 1)),
  );
  /** The frame at the displayed time; undefined before it has arrived. */
  readonly shownFrame = $derived(this.frames[this.index]);
  /** The end of the last frame, in seconds. */
  readonly end = $derived((this.frameCount * this.frameMillis) / 1000);

  #stop: AbortController | undefined;
  #names = new Map<string, string>();

  constructor(file: File) {
    this.file = file;
    this.url = URL.createObjectURL(file);
  }

  /** Returns a concept's name, or its id if no frame has the concept. */
  name(id: string): string {
    return this.#names.get(id) ?? id;
  }

  /** Requests predictions for every frame, with names in a language. It aborts a running request first. Errors are in `failure`. */
  async read(client: Client, language: LanguageCode): Promise<void> {
    this.#stopReading();
    const controller = new AbortController();
    this.#stop = controller;
    this.failure = undefined;
    this.isReading = true;
    const startedAt = performance.now();
    let framesAdded: Promise<void> = Promise.resolve();
    try {
      this.playable ??= await isPlayable(this.url);
      if (controller.signal.aborted) return;
      await v2((path, init) => client.fetch(path, init)).POST('/models/{model_id}/outputs', {
        params: { path: { model_id: general } },
        body: {
          inputs: [{ data: { video: { url: fileUrl } } }],
          model: { output_info: { output_config: { language, sample_ms: this.frameMillis } } },
        },
        signal: controller.signal,
        files: { [fileUrl]: this.file },
        pictures: this.playable ? 'thumbnail' : 'full',
        onFrames: ({ frame, of }) => {
          framesAdded = framesAdded.then(async () => {
            const answer = await frame?.answer.json();
            if (frame && !controller.signal.aborted) this.#addFrame(answer, frame.picture, of);
          });
        },
      });
      await framesAdded;
    } catch (failure) {
      await framesAdded.catch(() => {});
      if (!controller.signal.aborted) this.failure = failure;
    } finally {
      if (this.#stop === controller) {
        this.isReading = false;
        this.ms = performance.now() - startedAt;
      }
    }
  }

  #addFrame(answer: Schemas['OutputsAnswer'], picture: Blob, frameCount: number): void {
    const frame = answer.outputs?.[0]?.data.frames?.[0];
    if (!frame) return;
    const { concepts = [] } = frame.data;
    for (const { id, name } of concepts) this.#names.set(id, name);
    this.frameCount = frameCount;
    const { time } = frame.frame_info;
    this.frames = [...this.frames, { time, concepts, picture, url: URL.createObjectURL(picture) }];
    this.curveConcepts = assignSlots(this.curveConcepts, strongestConcepts(this.frames, maxCurves));
  }

  /** Displays another time. */
  seek(seconds: number): void {
    this.seconds = Math.max(0, Math.min(seconds, Math.max(0, this.end - 0.001)));
  }

  /** Pauses, and displays the frame that is `delta` frames after the current one, among those that have arrived. */
  step(delta: number): void {
    this.paused = true;
    const to = Math.max(0, Math.min(this.index + delta, this.frames.length - 1));
    this.seek((to * this.frameMillis) / 1000);
  }

  /** Starts or pauses the video. At its end, it starts from the beginning. */
  toggle(): void {
    if (!this.frames.length && !this.playable) return;
    if (this.paused && this.end && this.seconds >= this.end - 0.05) this.seek(0);
    this.paused = !this.paused;
  }

  /** Picks a concept, or unpicks the picked one. */
  pick(id: string): void {
    this.pickedConcept = this.pickedConcept === id ? undefined : id;
  }

  #stopReading(): void {
    this.#stop?.abort();
    this.#stop = undefined;
    for (const { url } of this.frames) revoke(url);
    this.frames = [];
    this.frameCount = 0;
    this.curveConcepts = [];
    this.isReading = false;
  }

  /** Aborts the request and revokes the object URLs. */
  close(): void {
    this.#stopReading();
    revoke(this.url);
  }
}
