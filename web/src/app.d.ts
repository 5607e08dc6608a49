declare module 'virtual:samples' {
  /** Language → English name of a concept → its name in that language. */
  const samples: Record<string, Record<string, string>>;
  export default samples;
}

interface WindowEventMap {
  /** Only some browsers have it. */
  beforeinstallprompt: Event & { prompt(): Promise<unknown> };
}
