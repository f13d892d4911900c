import { defineConfig } from 'vitest/config';

export default defineConfig({
  test: {
    include: ['test/*.test.ts'],
    // Real processes, on a machine that may be busy; each is ended within seconds.
    testTimeout: 60_000,
  },
});
