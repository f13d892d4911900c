import { cohortBackend } from '@locks/cohort';
import { defineHarness, type Harness } from '@locks/core/conformance';

/** They may pass a lease on for longer than a machine stands still, so that the cases see turns end for other reasons. */
const BOUND = { turns: 3, withinMs: 300 };

/** The harness of a backend, with cohorts over it. */
export function withCohorts(module: string, name: string, inner: Harness): Harness {
  const { setup, faults } = inner;
  const { wire, onOwnClient, ...others } = faults ?? {};
  const harness = defineHarness({
    ...inner,
    module,
    name,
    createBackendUnder: 'none',
    createBackend: async () => cohortBackend(await inner.createBackend(), BOUND),
    ...(setup && {
      setup: async () => {
        const started = await setup();
        // The setup learns the version of the server.
        Object.assign(harness, { server: inner.server });
        return started;
      },
    }),
    faults: {
      ...others,
      ...(onOwnClient && {
        async onOwnClient() {
          const { backend, closeClient } = await onOwnClient();
          return { backend: cohortBackend(backend, BOUND), closeClient };
        },
      }),
      ...(wire && {
        wire: {
          ...wire,
          createBackend: async (proxies) => cohortBackend(await wire.createBackend(proxies), BOUND),
        },
      }),
    },
  });
  return harness;
}
