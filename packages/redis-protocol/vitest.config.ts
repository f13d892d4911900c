import { defineConfig } from 'vitest/config';

export default defineConfig({
  test: {
    // Files share a process: a process of its own costs a file more than its tests do. The tests wait more than they work.
    isolate: false,
    maxWorkers: 2,
    // Real servers on a machine that may be busy with other suites.
    testTimeout: 60_000,
    hookTimeout: 60_000,
  },
});
