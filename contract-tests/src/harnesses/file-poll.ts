import { fileHarness } from './file/file-harness.ts';

/** The same where files cannot be watched: processes that wait poll. */
export default fileHarness(import.meta.url, 'file-poll', false);
