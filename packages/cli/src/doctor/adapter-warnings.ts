/** A warning that an adapter gave. */
export type AdapterWarning = Error & { readonly code?: string };

/**
 * Collects the warnings of the adapters in place of Node, which would print them. Gives a function that ends the collection and
 * returns the warnings.
 */
export function collectWarnings(): () => Promise<readonly AdapterWarning[]> {
  const warnings: AdapterWarning[] = [];
  const printing = process.listeners('warning');
  process.removeAllListeners('warning');
  const collect = (warning: AdapterWarning): void => {
    if (warning.code?.startsWith('LOCKS_') === true) warnings.push(warning);
    else for (const print of printing) print(warning);
  };
  process.on('warning', collect);
  return async () => {
    // Warnings are emitted in the next tick.
    await new Promise((resolve) => setImmediate(resolve));
    process.off('warning', collect);
    for (const print of printing) process.on('warning', print);
    return warnings;
  };
}
