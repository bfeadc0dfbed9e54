import { plainDialect, utf16Units, utf8Bytes } from '../outbound/plain-text.ts';

export const messengerDialect = plainDialect({ maxLength: 2000, count: utf16Units });

export const instagramDialect = plainDialect({ maxLength: 1000, count: utf8Bytes });
