import { z } from 'zod';

export const appName = z.enum(['whatsapp', 'messenger', 'telegram', 'slack']).describe('The chat app.');
