import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { defineConfig } from 'vitest/config';

export default defineConfig({
  test: {
    // The tests in browser/ need Chromium: the step `board` runs them, with --dir=browser.
    dir: 'test',
    // Real servers on a machine that may be busy with other suites.
    testTimeout: 60_000,
    hookTimeout: 60_000,
    // Most of the time a test waits for the processes and servers that it started.
    maxWorkers: 2,
    // The command is started hundreds of times from its sources: its types are stripped once.
    env: { NODE_COMPILE_CACHE: join(tmpdir(), 'node-compile-cache') },
  },
});
