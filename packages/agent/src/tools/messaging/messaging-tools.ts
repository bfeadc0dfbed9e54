import type { OwnTool } from '../tool.ts';
import { channels } from './channels.ts';
import { contacts } from './contacts.ts';
import { handoff } from './handoff.ts';
import { message } from './message.ts';
import { reply } from './reply.ts';

export const messagingTools: readonly OwnTool[] = [message, reply, channels, contacts, handoff];
