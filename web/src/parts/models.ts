// The names of models. Built-in models have a name in the reader's language. Other models have the name that a person gave them.
import { m } from '../i18n/shared';

const builtIn: Readonly<Record<string, () => string>> = {
  aaa03c23b3724a16a56b629203edc62c: () => m.model_general(),
  bd367be194cf45149e75f01d59f77ba7: () => m.model_food(),
  eeed0b6733a644cea07cf4c60f87ebb7: () => m.model_color(),
  bbb5f41425b8468d9b7a554ff10f8581: () => m.model_embed(),
};

interface NamedModel {
  readonly id: string;
  readonly name: string;
  readonly display_name?: string;
}

/** Returns the display name of a model. */
export function modelName({ id, name, display_name }: NamedModel): string {
  return builtIn[id]?.() ?? display_name ?? name;
}
