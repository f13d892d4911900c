import { createConnection, type RowDataPacket } from 'mysql2/promise';

/** Runs SQL as an administrator would, on a connection of its own. */
export async function adminQuery(
  url: string,
  sql: string,
  values: (string | Buffer)[] = [],
): Promise<RowDataPacket[]> {
  const connection = await createConnection({ uri: url, connectTimeout: 5_000 });
  try {
    const [rows] = await connection.query<RowDataPacket[]>(sql, values);
    return rows;
  } finally {
    connection.destroy();
  }
}
