"""Android devices without Google's services, over a distributor of UnifiedPush that the user chose."""
