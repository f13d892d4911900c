import { defineConfig } from 'vitest/config';

export default defineConfig({
  test: {
    // Files share a process: no test leaves anything in one, and a process of its own costs a file more than its tests do.
    isolate: false,
    // On a machine that may be busy with other suites.
    testTimeout: 60_000,
    hookTimeout: 60_000,
  },
});
