const AT_ONCE = 8;

/**
 * The results of `work` for each of many items, in their order; eight at a time, because a local server of a slow store would answer
 * the requests of other cases too late behind hundreds of one case.
 */
export async function someAtOnce<T, R>(
  items: readonly T[],
  work: (item: T, index: number) => Promise<R>,
): Promise<R[]> {
  const results = new Array<R>(items.length);
  const left = items.entries();
  const take = async () => {
    for (const [index, item] of left) results[index] = await work(item, index);
  };
  await Promise.all(Array.from({ length: AT_ONCE }, take));
  return results;
}
