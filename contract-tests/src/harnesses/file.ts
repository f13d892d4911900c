import { fileHarness } from './file/file-harness.ts';

/** Processes that wait are woken by a file that they watch. */
export default fileHarness(import.meta.url, 'file', true);
