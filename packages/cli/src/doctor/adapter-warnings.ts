/** A warning that an adapter gave, as `process.emitWarning` takes it. */
export interface AdapterWarning {
  readonly code: string;
  readonly message: string;
}

/**
 * Collects the warnings of the adapters in place of Node, which would print them. Gives a function that ends the collection and
 * returns the warnings.
 */
export function collectWarnings(): () => Promise<readonly AdapterWarning[]> {
  const warnings: AdapterWarning[] = [];
  const printing = process.listeners('warning');
  process.removeAllListeners('warning');
  const collect = (warning: Error & { readonly code?: string }): void => {
    const { code = '', message } = warning;
    if (code.startsWith('LOCKS_')) warnings.push({ code, message });
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
