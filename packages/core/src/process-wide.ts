/**
 * An object that all copies of core in this process share. There may be several: an ES module beside CommonJS, in a bundle or
 * under a tool with its own resolution, or two versions.
 *
 * @param name - with a version of the object's shape: copies with different shapes must not share it
 */
export function processWide<T extends object>(name: string, make: () => T): T {
  const shared = globalThis as { [key: symbol]: T | undefined };
  return (shared[Symbol.for(`@locks/core/${name}`)] ??= make());
}
