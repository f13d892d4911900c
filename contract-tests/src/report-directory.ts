import { fileURLToPath } from 'node:url';

/** The folder in which every run writes its report. */
export const reportDirectory: string = fileURLToPath(new URL('../../conformance-report', import.meta.url));
