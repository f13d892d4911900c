import pg from 'pg';

/** Runs SQL as an administrator would, on a connection of its own. */
export async function withAdmin<T>(url: string, act: (admin: pg.Client) => Promise<T>): Promise<T> {
  const admin = new pg.Client({ connectionString: url });
  admin.on('error', () => undefined);
  await admin.connect();
  try {
    return await act(admin);
  } finally {
    await admin.end();
  }
}
