/** A concept that the person looks at among what a model said: where it was seen is lit. */
export interface Hot {
  readonly id: string;
  readonly name: string;
  readonly model: string;
}
