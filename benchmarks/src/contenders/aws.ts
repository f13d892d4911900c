import { countConflict, countSent } from '../measure/client-counts.ts';

/** Of an attempt that another one came before: DynamoDB's names, and S3's status codes. */
const CONFLICTS: ReadonlySet<unknown> = new Set(['ConditionalCheckFailedException', 409, 412]);

/** What every client of AWS has, without the types of its requests. */
interface AwsClient {
  readonly middlewareStack: {
    add(
      middleware: (
        next: (args: never) => Promise<never>,
        context: { readonly commandName?: string },
      ) => (args: never) => Promise<never>,
      options: { readonly step: 'finalizeRequest'; readonly priority: 'low'; readonly name: string },
    ): void;
  };
}

/** Counts what a client sends: behind the middleware that repeats, so that each attempt counts. */
export function counting<C extends { readonly middlewareStack: object }>(client: C): C {
  const { middlewareStack } = client as unknown as AwsClient;
  middlewareStack.add(
    (next, { commandName = 'unknown' }) =>
      async (args) => {
        countSent(commandName.replace(/Command$/, ''));
        try {
          return await next(args);
        } catch (error) {
          if (isConflict(error)) countConflict();
          throw error;
        }
      },
    { step: 'finalizeRequest', priority: 'low', name: 'countOfTheBenchmark' },
  );
  return client;
}

export function isConflict(error: unknown): boolean {
  const { name, $metadata } = error as Error & { $metadata?: { httpStatusCode?: number } };
  return CONFLICTS.has(name) || CONFLICTS.has($metadata?.httpStatusCode);
}

export const AWS = {
  region: 'eu-central-1',
  credentials: { accessKeyId: 'local', secretAccessKey: 'local' },
};
