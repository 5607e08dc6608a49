// A value on the map while a person changes it: a shape or a pin. The map shows each change at once. The page gets the value at the end
// of the change, because it may move the map, and a drag across a moving map would end at another place.

const pauseMillis = 500; // a series of key presses ends after this time without one

export class Draft<T> {
  /** How many changes Escape has cancelled. */
  restored = $state(0);
  #value = $state.raw<T>(); // undefined: the value did not change yet
  #isOpen = $state(false);
  #pause: ReturnType<typeof setTimeout> | undefined;
  readonly #read: () => T | undefined;
  readonly #write: (value: T) => void;

  /** read returns the value of the page, and write sets it. */
  constructor(read: () => T | undefined, write: (value: T) => void) {
    this.#read = read;
    this.#write = write;
  }

  /** The value to show. */
  get value(): T | undefined {
    return this.#value ?? this.#read();
  }

  /** Whether a change has begun and not ended. */
  get isOpen(): boolean {
    return this.#isOpen;
  }

  /** Begins a drag. Until it ends, Escape cancels it. */
  begin(): void {
    this.#pause = void clearTimeout(this.#pause);
    if (!this.#isOpen) addEventListener('keydown', this.#escape, true);
    this.#isOpen = true;
  }

  /** Shows a value during a drag. After the end of the drag it has no effect. */
  move(value: T): void {
    if (this.#isOpen) this.#value = value;
  }

  /** Shows the value after a key press. The series of presses ends half a second after the last one. */
  press(value: T): void {
    this.begin();
    this.#value = value;
    this.#pause = setTimeout(this.commit, pauseMillis);
  }

  /** Ends the change, and gives the page the new value, if there is one. */
  commit = (): void => {
    const value = this.#value;
    this.cancel();
    if (value !== undefined) this.#write(value);
  };

  /** Ends a series of key presses, for example because the focus moves. */
  leave = (): void => {
    if (this.#pause !== undefined) this.commit();
  };

  /** Ends the change, and shows the value from before. */
  cancel = (): void => {
    this.#pause = void clearTimeout(this.#pause);
    removeEventListener('keydown', this.#escape, true);
    this.#isOpen = false;
    this.#value = undefined;
  };

  #escape = (event: KeyboardEvent): void => {
    if (event.key !== 'Escape') return;
    event.preventDefault();
    event.stopPropagation();
    this.cancel();
    this.restored++;
  };
}
