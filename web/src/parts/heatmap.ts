// A heatmap shows where a concept was found in a picture. It is a grid of weights, one for each part of the picture.

import { fileUrl, type Schemas, type V2 } from '../api/client';

/** The heatmap of a concept in a picture. */
export interface Heatmap extends Omit<Schemas['Activations'], 'concepts'> {
  readonly values: readonly number[]; // row by row, 0 to 1
}

/**
 * Returns heatmaps that show where a model sees concepts in a picture, by the ids of the concepts. picture: its bytes, or the id of a
 * stored input.
 */
export async function readHeatmaps(
  v2: V2,
  model: string,
  picture: Blob | string,
  concepts: readonly string[],
): Promise<Map<string, Heatmap>> {
  const isStored = typeof picture === 'string';
  const { outputs } = await v2.POST('/models/{model_id}/activations', {
    params: { path: { model_id: model } },
    body: { inputs: [isStored ? { id: picture } : { data: { image: { url: fileUrl } } }], concepts },
    files: isStored ? {} : { [fileUrl]: picture },
  });
  const [output] = outputs;
  if (!output?.activations) return new Map();
  const { concepts: found, ...grid } = output.activations;
  return new Map(found.map(({ id, values }) => [id, { ...grid, values }]));
}

const darkest = 0.62; // opacity of the dimming where the concept is absent, 0 to 1
const fade = 0.06; // width of the fade at the edges of the analysed part, as a share of the picture

/** Returns RGBA pixels that dim a picture of w × h, except where the concept was found. */
export function maskOf({ box, width, height, values }: Heatmap, w: number, h: number): Uint8ClampedArray<ArrayBuffer> {
  const pixels = new Uint8ClampedArray(4 * w * h);
  const maxValue = Math.max(...values, 1e-6);
  const [top, left, bottom, right] = box;
  /** Returns the two cells around a place and the weight of the second, for linear interpolation between the centres of cells. */
  const cells = (at: number, from: number, to: number, n: number): [number, number, number] => {
    const place = Math.min(n - 1, Math.max(0, ((at - from) / (to - from)) * n - 0.5));
    const first = Math.min(Math.floor(place), Math.max(0, n - 2));
    return [first, Math.min(n - 1, first + 1), place - first];
  };
  for (let y = 0; y < h; y++) {
    const down = (y + 0.5) / h;
    const [above, below, dy] = cells(down, top, bottom, height);
    for (let x = 0; x < w; x++) {
      const across = (x + 0.5) / w;
      const seen = down >= top && down <= bottom && across >= left && across <= right;
      const [before, after, dx] = cells(across, left, right, width);
      const at = (row: number, column: number) => values[row * width + column] ?? 0;
      const upper = at(above, before) * (1 - dx) + at(above, after) * dx;
      const lower = at(below, before) * (1 - dx) + at(below, after) * dx;
      const edge = Math.min(inside(down, top, bottom), inside(across, left, right));
      const value = seen ? ((upper * (1 - dy) + lower * dy) / maxValue) * edge : 0;
      pixels[4 * (y * w + x) + 3] = 255 * darkest * (1 - smooth((value - 0.2) / 0.6));
    }
  }
  return pixels;
}

/** Returns how far inside the analysed part a place is, 0 to 1. It fades towards an edge of that part that is not the picture's edge. */
function inside(at: number, from: number, to: number): number {
  const near = Math.min(from > 0.001 ? at - from : 1, to < 0.999 ? to - at : 1);
  return Math.min(1, Math.max(0, near / fade));
}

function smooth(t: number): number {
  const x = Math.min(1, Math.max(0, t));
  return x * x * (3 - 2 * x);
}
