/** Caches the result of make for each key object. The cache does not keep a key alive, and drops the result with its key. */
export function memoByKey<K extends WeakKey, V>(make: (of: K) => V): (of: K) => V {
  const all = new WeakMap<K, V>();
  return (of) => {
    let one = all.get(of);
    if (one === undefined) {
      one = make(of);
      all.set(of, one);
    }
    return one;
  };
}
