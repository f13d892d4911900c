import { defineConfig } from 'vitest/config';

export default defineConfig({
  // Real processes, on a machine that may be busy; each is ended within seconds.
  test: { testTimeout: 60_000 },
});
