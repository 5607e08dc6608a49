/** Caches the result of make for each key object. The cache does not keep a key alive, and drops the result with its key. */
export function memoByKey<K extends WeakKey, V>(make: (key: K) => V): (key: K) => V {
  const all = new WeakMap<K, V>();
  return (key) => {
    let one = all.get(key);
    if (one === undefined) {
      one = make(key);
      all.set(key, one);
    }
    return one;
  };
}
