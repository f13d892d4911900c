import { defineConfig } from 'vitest/config';

/** What kills the mutants of the rules and of leases: Stryker runs the tests of a changed line alone. */
export default defineConfig({
  test: {
    isolate: false,
    include: ['test/{rules,lifetime}/**/*.test.ts', 'test/backend/modes.test.ts'],
    testTimeout: 60_000,
  },
});
