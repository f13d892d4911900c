import { fileURLToPath } from 'node:url';

/** Where every run writes what it found. */
export const reportDirectory: string = fileURLToPath(new URL('../../conformance-report', import.meta.url));
